-- Text for another format of output, such as LaTeX in a notebook, becomes code; pandoc leaves it out.
function RawBlock(raw)
  return raw.format ~= "html" and pandoc.CodeBlock(raw.text) or nil
end

function RawInline(raw)
  return raw.format ~= "html" and pandoc.Code(raw.text) or nil
end
