/** Where the fields of a 64-bit little-endian ELF file begin (System V ABI, "ELF Header"). */
const AT = {
  class: 4,
  order: 5,
  machine: 18,
  program_headers: 32,
  entry_size: 54,
  count: 56,
} as const
const ELF64 = 2
const LITTLE_ENDIAN = 1
const INTERPRETER = 3
const MACHINES: Partial<Record<number, string>> = { 62: "x64", 183: "arm64" }

/** So much of the beginning of a program tells its platform. */
export const ELF_HEAD_BYTES = 65_536

/**
 * What a program runs on, by its first bytes: `linux-x64`, `linux-arm64`, and with `-musl` behind it where
 * it is linked against musl. `undefined` for what is no program for Linux on these processors.
 */
export function platformOf(head: Buffer): string | undefined {
  const is_elf = head.length >= 64 && head.toString("latin1", 0, 4) === "\x7fELF"
  if (!is_elf || head[AT.class] !== ELF64 || head[AT.order] !== LITTLE_ENDIAN) return undefined
  const machine = MACHINES[head.readUInt16LE(AT.machine)]
  if (machine === undefined) return undefined
  const interpreter = interpreterOf(head)
  return `linux-${machine}${interpreter.includes("musl") ? "-musl" : ""}`
}

/** The loader that the program names; "" for one that names none. */
function interpreterOf(head: Buffer): string {
  const first = Number(head.readBigUInt64LE(AT.program_headers))
  const size = head.readUInt16LE(AT.entry_size)
  for (let at = 0; at < head.readUInt16LE(AT.count); at++) {
    const from = first + at * size
    if (from + 40 > head.length) return ""
    if (head.readUInt32LE(from) !== INTERPRETER) continue
    const offset = Number(head.readBigUInt64LE(from + 8))
    const length = Number(head.readBigUInt64LE(from + 32))
    return head.toString("latin1", offset, offset + length).replace(/\0.*$/s, "")
  }
  return ""
}
