// The state of the page in the address: after "#", so that it is never sent to a server.

async function piped(bytes, transform) {
  const stream = new Blob([bytes]).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function linkOf(state) {
  const text = new TextEncoder().encode(JSON.stringify(state));
  const packed = await piped(text, new CompressionStream("deflate-raw"));
  let letters = "";
  for (const byte of packed) letters += String.fromCharCode(byte);
  const coded = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${location.origin}${location.pathname}#s=${coded}`;
}

// null if the address contains no state, or none that can be read.
export async function stateOf(hash) {
  if (!hash.startsWith("#s=")) return null;
  try {
    const coded = hash.slice(3).replaceAll("-", "+").replaceAll("_", "/");
    const packed = Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
    const text = await piped(packed, new DecompressionStream("deflate-raw"));
    const state = JSON.parse(new TextDecoder().decode(text));
    return typeof state.query === "string" && typeof state.text === "string" ? state : null;
  } catch {
    return null;
  }
}
