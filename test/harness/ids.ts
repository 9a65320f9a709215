/** A readable stand-in for an id: a UUID made of the name's bytes, so ids sort as their names do. */
export function idFor(name: string): string {
  const hex = Buffer.from(name).toString("hex").padEnd(32, "0")
  if (hex.length > 32) throw new Error(`"${name}" is too long to become an id`)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return [...parts, hex.slice(20)].join("-")
}
