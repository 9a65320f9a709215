import { afterAll, spyOn } from "bun:test"

/** Keeps the log of one test file off the terminal, where the faults in it are wanted. Returns its lines so far. */
export function quietLog(): () => string[] {
  const written: string[] = []
  const stderr = spyOn(process.stderr, "write").mockImplementation((chunk) => {
    written.push(String(chunk))
    return true
  })
  afterAll(() => stderr.mockRestore())
  return () => written.join("").split("\n").filter(Boolean)
}
