import { readFileSync } from "node:fs"

/** MB is a million bytes in every bench, of memory as of files. */
export const MEGABYTE = 1_000_000

/** What of the process is in memory now, in MB; NaN where it has ended. Linux only. */
export function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB/m.exec(status) ?? []
  return (Number(kibibytes ?? Number.NaN) * 1024) / MEGABYTE
}
