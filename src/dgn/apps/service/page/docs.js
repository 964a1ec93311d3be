// Shows /openapi.json: each path with the fields of what may be sent and of what is answered.

const api = await (await fetch("/openapi.json")).json();

function made(tag, text, ...children) {
  const node = document.createElement(tag);
  if (text) node.textContent = text;
  node.append(...children);
  return node;
}

const named = (schema) => schema.$ref?.split("/").at(-1);
const resolved = (schema) => (schema.$ref ? api.components.schemas[named(schema)] : schema);
const variants = (schema) => schema.anyOf ?? schema.oneOf ?? [schema];

// What a value may be, in words: "string", "list of GivenPassage, or string", "null".
function kind(schema) {
  const kinds = variants(schema).map((one) => {
    if (one.$ref) return named(one);
    if (one.type === "array") return `list of (${kind(one.items ?? {})})`;
    return one.const ?? one.type ?? "anything";
  });
  return [...new Set(kinds)].join(" or ");
}

function limitsOf(schema) {
  const words = { minimum: "at least", maximum: "at most", exclusiveMinimum: "above", maxItems: "at most (entries)" };
  return variants(schema).flatMap((one) => Object.entries(words)
    .filter(([name]) => one[name] !== undefined).map(([name, word]) => `${word} ${one[name]}`)).join(", ");
}

function table(schema, seen = new Set()) {
  const found = document.createDocumentFragment();
  for (const one of variants(schema)) {
    const name = named(one);
    const { properties, description, required = [] } = resolved(one);
    if (!properties || seen.has(name)) continue;
    seen.add(name);
    const rows = Object.entries(properties).map(([field, value]) => made("tr", "",
      made("td", field + (required.includes(field) ? " *" : "")), made("td", kind(value)),
      made("td", [value.description, limitsOf(value)].filter(Boolean).join(" "))));
    found.append(made("h4", name), made("p", description), made("table", "", made("tbody", "", ...rows)));
    for (const value of Object.values(properties)) {
      for (const inner of variants(value)) found.append(table(inner.items ?? inner, seen));
    }
  }
  return found;
}

const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { summary, requestBody, responses }]) => {
    const body = requestBody?.content["application/json"].schema;
    const answer = responses[200]?.content?.["application/json"]?.schema;
    const others = Object.entries(responses).filter(([status]) => status !== "200");
    return made("details", "",
      made("summary", "", made("b", `${method.toUpperCase()} ${path}`), ` ${summary}`),
      ...(body ? [made("h3", "Request"), table(body)] : []),
      ...(answer ? [made("h3", "Answer"), table(answer)] : []),
      ...(others.length ? [made("h3", "Refusals"), made("table", "", made("tbody", "", ...others.map(
        ([status, { description }]) => made("tr", "", made("td", status), made("td", description)))))] : []));
  }));
document.querySelector("#operations").replaceChildren(...operations);
