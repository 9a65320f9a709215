const UNITS = ["B", "KB", "MB", "GB", "TB"]

/** A number of bytes for people: `412 B`, `1.5 MB`. One KB is 1024 bytes, as in the settings. */
export function byteSize(bytes: number): string {
  const steps = Math.floor(Math.log2(Math.max(1, Math.abs(bytes))) / 10)
  const at = Math.min(steps, UNITS.length - 1)
  const value = bytes / 1024 ** at
  return `${at === 0 || Math.abs(value) >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[at]}`
}
