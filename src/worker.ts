import { serveTasks } from "./core/worker-task"
import type { MailToCompose } from "./emails/compose"

/** The thread for pure work that costs CPU. Libraries load with the first task that needs them. */
serveTasks({
  compose: async (mail: MailToCompose) => {
    const { composeMail } = await import("./emails/compose-task")
    return composeMail(mail)
  },
  parse: async (raw: Uint8Array) => {
    const { parseMail } = await import("./mailbox/parse-task")
    return parseMail(raw)
  },
})
