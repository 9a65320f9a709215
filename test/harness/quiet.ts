import { afterAll, spyOn } from "bun:test"

/** Keeps the log of one test file off the terminal, where the faults in it are wanted. */
export function quietLog() {
  const stderr = spyOn(process.stderr, "write").mockImplementation(() => true)
  afterAll(() => stderr.mockRestore())
}
