/** How a frame begins (RFC 8878, 3.1.1). No mail begins so: the first byte of one is a letter. */
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd]

/** The bytes in a Zstandard frame; what is no frame is returned as it is. */
export const unpack = (kept: Uint8Array): Uint8Array =>
  MAGIC.every((byte, at) => kept[at] === byte) ? Bun.zstdDecompressSync(kept) : kept
