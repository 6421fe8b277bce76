-- Text for one format of output only, as LaTeX in notebooks, stays as code; pandoc leaves it out.
function RawBlock(raw)
  return raw.format ~= "html" and pandoc.CodeBlock(raw.text) or nil
end

function RawInline(raw)
  return raw.format ~= "html" and pandoc.Code(raw.text) or nil
end
