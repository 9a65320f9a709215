import { readdirSync, readFileSync } from "node:fs"

/** The threads of a server by what they do. */
export const KINDS = ["main", "worker", "compiler", "other"] as const

type Kind = (typeof KINDS)[number]

/** Processor time in nanoseconds. */
export type Spent = Record<Kind, number>

/** Fields of `/proc/PID/stat` behind the name: user and system time of children that ended. */
const ENDED_CHILDREN = [13, 14] as const
/** Of these fields, a hundredth of a second each. */
const TICK_NANOSECONDS = 10_000_000

/** The processor time that a process has taken, all threads together. Linux counts it for each thread. */
export const nanosecondsOf = (pid: number): number =>
  threadsOf(pid).reduce((sum, folder) => sum + timeOf(folder), 0)

/** As `nanosecondsOf`, by the name of each thread. Threads that ended meanwhile are not counted; few do. */
export function nanosecondsByKind(pid: number): Spent {
  const spent: Spent = { main: 0, worker: 0, compiler: 0, other: 0 }
  for (const folder of threadsOf(pid)) {
    const name = readFileSync(`${folder}/comm`, "utf8").trim()
    spent[kindOf(folder.endsWith(`/${pid}`), name)] += timeOf(folder)
  }
  return spent
}

/** As `nanosecondsOf`, of a process and its children, also of those that ended. */
export function nanosecondsOfFamily(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  const ended = ENDED_CHILDREN.reduce((sum, at) => sum + Number(fields[at]) * TICK_NANOSECONDS, 0)
  const living = children.filter((child) => child !== "").map(Number)
  return living.reduce((sum, child) => sum + nanosecondsOf(child), nanosecondsOf(pid) + ended)
}

function threadsOf(pid: number): string[] {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder).map((thread) => `${folder}/${thread}`)
}

function timeOf(folder: string): number {
  const [spent = "0"] = readFileSync(`${folder}/schedstat`, "utf8").split(" ")
  return Number(spent)
}

function kindOf(is_first: boolean, name: string): Kind {
  if (is_first) return "main"
  if (/^(JIT|JSC)/.test(name)) return "compiler"
  return /worker/i.test(name) ? "worker" : "other"
}
