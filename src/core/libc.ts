import { dlopen } from "bun:ffi"
import { readFileSync } from "node:fs"

/** By their own names: the process has one of them loaded already, so no folder is searched. */
const NAMES = [
  "libc.so.6",
  `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`,
] as const

export type Libc = NonNullable<ReturnType<typeof load>>

let loaded: { library: Libc | undefined } | undefined

/** The calls of the system that the runtime has no words for. Undefined elsewhere than on Linux. */
export function libc(): Libc | undefined {
  loaded ??= { library: process.platform === "linux" ? firstLoaded() : undefined }
  return loaded.library
}

function firstLoaded(): Libc | undefined {
  for (const name of NAMES) {
    const library = load(name)
    if (library) return library
  }
  return undefined
}

function load(name: string) {
  try {
    return dlopen(name, {
      fcntl: { args: ["i32", "i32", "i64"], returns: "i32" },
      getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
      getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
      getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
      shutdown: { args: ["i32", "i32"], returns: "i32" },
      listen: { args: ["i32", "i32"], returns: "i32" },
    }).symbols
  } catch {
    return undefined
  }
}

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
