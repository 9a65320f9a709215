/** Fast rather than small: mail shrinks to a third, and the last tenth would cost five times as long. */
const LEVEL = 1

/** Below this there is little to win. */
const WORTH_BYTES = 256

/** Above this it is files in base64, which hardly shrink: a second copy in memory buys nothing. */
const LARGE_BYTES = 1024 * 1024

/** How a frame begins (RFC 8878, 3.1.1). No mail begins so: the first byte of one is a letter. */
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd]

/** The bytes as they are kept: a Zstandard frame (RFC 8878), or themselves where that gains too little. */
export function pack(mail: Uint8Array): Uint8Array {
  if (mail.length < WORTH_BYTES || mail.length > LARGE_BYTES) return mail
  const frame = Bun.zstdCompressSync(mail, { level: LEVEL })
  return frame.length < mail.length ? frame : mail
}

const LENGTH_BYTES = 8

/**
 * The bytes up to an end that `file` has as well, packed, behind the length of that end: so a changed
 * message needs no second copy of its files.
 */
export function withoutEnd(mail: Uint8Array, file: Uint8Array): Uint8Array {
  const most = Math.min(mail.length, file.length)
  let same = 0
  while (same < most && mail[mail.length - 1 - same] === file[file.length - 1 - same]) same += 1
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeBigUInt64BE(BigInt(same))
  return new Uint8Array(Buffer.concat([length, pack(mail.subarray(0, mail.length - same))]))
}

/** What `withoutEnd` was given. */
export function withEnd(kept: Uint8Array, file: Uint8Array): Buffer {
  const bytes = Buffer.from(kept.buffer, kept.byteOffset, kept.byteLength)
  const same = Number(bytes.readBigUInt64BE())
  return Buffer.concat([
    unpack(bytes.subarray(LENGTH_BYTES)),
    file.subarray(file.length - same, file.length),
  ])
}

/** What `pack` was given, byte for byte; also takes mail that was never packed. */
export const unpack = (kept: Uint8Array): Uint8Array =>
  MAGIC.every((byte, at) => kept[at] === byte) ? Bun.zstdDecompressSync(kept) : kept
