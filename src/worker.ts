import { serveTasks } from "./core/worker-task"
import type { MailToCompose } from "./emails/compose"

/** The thread for work that costs CPU or waits for the disk. Libraries load with the first task that needs them. */
serveTasks({
  checkpoint: async (path: string) => {
    const { checkpointFile } = await import("./store/checkpoint-task")
    checkpointFile(path)
  },
  compose: async (mail: MailToCompose) => {
    const { composeMail } = await import("./emails/compose-task")
    return composeMail(mail)
  },
  parse: async (raw: Uint8Array) => {
    const { parseMail } = await import("./mailbox/parse-task")
    return parseMail(raw)
  },
})
