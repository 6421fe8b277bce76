// How is the HTTP API described for people? From /openapi.json, with an example of each request.

import { getJson } from "./api.js";
import { element } from "./dom.js";

const SECTIONS = [["search", "Search"], ["re-ranking", "Re-ranking of your own texts"], ["models", "Embeddings and attention"], ["documents", "Documents"], ["service", "Service"]];
const EXAMPLES = { query: "how long do I have to return a parcel", q: "return a parcel", documents: ["Parcels can be returned within 30 days.", "We are closed on Sundays."], input: ["Parcels can be returned within 30 days."], inputs: ["Parcels can be returned within 30 days."], texts: ["Parcels can be returned within 30 days.", "We are closed on Sundays."], text: "Parcels can be returned within 30 days." };
const error = document.getElementById("error"), origin = location.origin;

try {
  const api = await getJson("/openapi.json");
  const routes = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, route]) => ({ path, method: method.toUpperCase(), ...route })));
  document.getElementById("first").textContent = api.paths["/search"] ? `curl '${origin}/search?q=return+a+parcel&top=3'` : example("POST", "/v2/rerank", ["query", "documents"].map(name => [name, {}]));
  document.getElementById("routes").replaceChildren(...SECTIONS.flatMap(([tag, name]) => {
    const found = routes.filter(route => route.tags?.includes(tag));
    return found.length ? [element("h3", {}, name), ...found.map(route => section(route, api.components.schemas))] : [];
  }));
  // The link itself would carry no key.
  document.querySelector("a[href='/openapi.json']").addEventListener("click", event => {
    event.preventDefault();
    open(URL.createObjectURL(new Blob([JSON.stringify(api, null, 2)], { type: "application/json" })));
  });
} catch (reason) {
  error.textContent = reason.message;
  error.hidden = false;
}

function section({ path, method, summary, description, parameters = [], requestBody: body }, schemas) {
  const resolve = schema => schema?.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
  const request = resolve(body?.content["application/json"].schema), required = new Set(request?.required);
  const fields = [
    ...parameters.map(one => [one.name, one.schema, one.required, one.description ?? one.schema.description]),
    ...Object.entries(request?.properties ?? {}).map(([name, schema]) => [name, schema, required.has(name), schema.description]),
  ];
  return element("details", {}, element("summary", {}, element("code", {}, `${method} ${path}`), ` ${description?.split("\n")[0] ?? summary}`),
    element("pre", {}, example(method, path, fields.filter(([, , needed]) => needed))),
    element("dl", {}, ...fields.flatMap(([name, schema, needed, text]) => [
      element("dt", {}, element("code", {}, name), ` ${kind(schema, schemas)}${needed ? ", required" : schema.default !== undefined && schema.default !== null ? `, default ${JSON.stringify(schema.default)}` : ""}`),
      element("dd", {}, text ?? ""),
    ])));
}

function kind(schema, schemas) {
  if (schema.$ref) return kind(schemas[schema.$ref.split("/").at(-1)], schemas);
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.anyOf) return [...new Set(schema.anyOf.filter(one => one.type !== "null").map(one => kind(one, schemas)))].join(" | ");
  return schema.type === "array" ? `list of ${schema.items ? kind(schema.items, schemas) : "anything"}` : schema.type ?? "object";
}

function example(method, path, needed) {
  const value = (name, schema) => EXAMPLES[name] ?? schema.examples?.[0] ?? "…";
  const inPath = new Set(needed.map(([name]) => name).filter(name => path.includes(`{${name}`)));
  const url = origin + path.replace(/\{(\w+)[^}]*\}/g, "ID");
  const rest = needed.filter(([name]) => !inPath.has(name));
  if (method === "GET" || method === "DELETE") {
    const query = new URLSearchParams(rest.map(([name, schema]) => [name, value(name, schema)])).toString();
    return `curl ${method === "GET" ? "" : `-X ${method} `}'${url}${query && `?${query}`}'`;
  }
  const body = JSON.stringify(Object.fromEntries(rest.map(([name, schema]) => [name, path === "/documents" ? [{ id: "gifts", title: "Gift cards", text: "Valid for three years." }] : value(name, schema)])));
  return `curl ${url} -H 'content-type: application/json' -d '${body}'`;
}
