// The state of the page in the address: after "#", so that it is never sent to a server.

const LONGEST_LINK = 2 ** 16;
const LARGEST_STATE = 2 ** 22; // as much as the service accepts
const PIECE = 2 ** 10; // deflate makes at most 1,032 bytes of one, so that a piece becomes 1 MiB at most

// null if the text is too long for an address.
export async function linkOf(state) {
  const text = new TextEncoder().encode(JSON.stringify(state));
  if (text.length > LARGEST_STATE) return null;
  const packed = await piped(text, new CompressionStream("deflate-raw"), Infinity);
  let letters = "";
  for (const byte of packed) letters += String.fromCharCode(byte);
  const coded = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const link = `${location.origin}${location.pathname}#s=${coded}`;
  return link.length <= LONGEST_LINK ? link : null;
}

// null if the address contains no state; an error with a sentence if it contains a bad one.
export async function stateOf(hash) {
  if (!hash.startsWith("#s=")) return null;
  if (hash.length > LONGEST_LINK) throw tooLarge();
  try {
    const coded = hash.slice(3).replaceAll("-", "+").replaceAll("_", "/");
    const packed = Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
    const bytes = await piped(packed, new DecompressionStream("deflate-raw"), LARGEST_STATE);
    const state = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof state.query === "string" && typeof state.text === "string") return state;
  } catch (error) {
    if (error instanceof RangeError) throw error;
  }
  throw new Error("This link is damaged, so that its text could not be read. Ask for it again.");
}

const tooLarge = () => new RangeError("This link contains more text than this page accepts, so it was not opened.");

// Reads while it writes and stops at the limit: a small link can inflate to hundreds of megabytes.
async function piped(bytes, transform, limit) {
  let start = 0;
  const source = new ReadableStream({
    pull(controller) {
      if (start >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(start, start + PIECE));
      start += PIECE;
    },
  }, { highWaterMark: 0 });
  const reader = source.pipeThrough(transform).getReader();
  const parts = [];
  let size = 0;
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      throw tooLarge();
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
