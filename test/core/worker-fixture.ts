import { getPriority } from "node:os"
import { ApiError } from "../../src/core/errors"
import { serveTasks } from "../../src/core/worker-task"

/** The code of tasks that is there already. */
const present = <Tasks extends Record<string, (input: never) => unknown>>(tasks: Tasks) =>
  Object.fromEntries(Object.entries(tasks).map(([name, task]) => [name, async () => task]))

const tasks = present({
  double: (input: { value: number }) => input.value * 2,
  "double-all": (inputs: number[]) => inputs.map((input) => input * 2),
  length: async (input: Uint8Array) => input.byteLength,
  bytes: (size: number) => ({ raw: new Uint8Array(size).fill(7), small: Buffer.from("abc") }),
  refuse: () => {
    throw new ApiError("template_render_failed", "No.", { missing: ["name"] })
  },
  moved: () => {
    throw new ApiError("otp_expired", "Late.", {}, { status: 400 })
  },
  break: () => {
    throw Object.assign(new TypeError("broken"), { code: "E_BROKEN" })
  },
  chatter: () => {
    console.warn("a library of a thread says %s", "something")
    return "done"
  },
  closure: () => () => 1,
  rest: async (milliseconds: number) => {
    await Bun.sleep(milliseconds)
    return "rested"
  },
  /** Holds the thread for a while, as SQLite does. */
  hold: (flag: Int32Array<SharedArrayBuffer>) => {
    Atomics.store(flag, 1, 1)
    Atomics.wait(flag, 0, 0)
    Atomics.store(flag, 1, 2)
  },
  niceness: () => getPriority(),
  spin: () => {
    for (;;);
  },
  exit: () => process.exit(3),
})

serveTasks({
  ...tasks,
  "load-slowly": async () => {
    await Bun.sleep(1000)
    return () => "loaded"
  },
  "load-nothing": async () => {
    throw new Error("the code is broken")
  },
})
