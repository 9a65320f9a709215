/** How a frame begins (RFC 8878, 3.1.1). No mail begins so: the first byte of one is a letter. */
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd]

const LENGTH_BYTES = 8

/** A mail that ends as `file` does, from its packed beginning behind the length of that end. */
export function withEnd(kept: Uint8Array, file: Uint8Array): Buffer {
  const bytes = Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength)
  const same = Number(bytes.readBigUInt64BE())
  return Buffer.concat([
    unpack(bytes.subarray(LENGTH_BYTES)),
    file.subarray(file.length - same, file.length),
  ])
}

/** The bytes in a Zstandard frame (RFC 8878); what is no frame is returned as it is. */
export const unpack = (kept: Uint8Array): Uint8Array =>
  MAGIC.every((byte, at) => kept[at] === byte) ? Bun.zstdDecompressSync(kept) : kept
