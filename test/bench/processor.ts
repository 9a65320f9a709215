import { readdirSync, readFileSync } from "node:fs"

/** The processor time that a process has taken, all threads together. Linux counts it for each thread. */
export function nanosecondsOf(pid: number): number {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder).reduce((sum, thread) => {
    const [spent = "0"] = readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")
    return sum + Number(spent)
  }, 0)
}
