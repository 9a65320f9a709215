import { closeSync, openSync, readFileSync } from "node:fs"

/** How many files and sockets this process may have open; Infinity where the system does not say. */
export function descriptorLimit(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8")
    const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Whether this process can open `count` more files now. */
export function hasDescriptors(count: number): boolean {
  const opened: number[] = []
  try {
    while (opened.length < count) opened.push(openSync("/dev/null", "r"))
    return true
  } catch {
    return false
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
