import { rmSync } from "node:fs"

const paths: string[] = []

/** This folder goes when the tests of this process are over, whatever became of them. */
export function leftover(path: string): string {
  paths.push(path)
  return path
}

export function removeLeftovers(): void {
  for (const path of paths.splice(0)) rmSync(path, { recursive: true, force: true })
}
