import { serveTasks } from "./core/worker-task"
import type { MailToCompose, MailToNarrow, MailToSign } from "./emails/compose-task"
import type { PartsToParse } from "./http/json"
import type { InboundToRead } from "./inbound/parse-inbound-task"
import type { SmallMail } from "./inbound/small-mail-task"
import type { VerifyStep } from "./inbound/verify-task"
import type { MailContent } from "./lib/spam-content"
import type { MailToRead } from "./smtp/submitted-mail"
import type { FileToCheck } from "./store/file-tasks"
import type { RenderTask } from "./templates/render"
import type { RenderJob } from "./templates/render-templates-task"
import type { TemplateText } from "./templates/texts"

/** The thread for work that costs CPU, or waits for the disk. Libraries load with the first task that needs them. */
serveTasks({
  "copy-log": async (path: string) => {
    const { copyLog } = await import("./store/file-tasks")
    return copyLog(path)
  },
  "check-file": async (file: FileToCheck) => {
    const { checkFile } = await import("./store/file-tasks")
    return checkFile(file)
  },
  compose: async (mail: MailToCompose | MailToSign) => {
    const { composeAndPack } = await import("./emails/compose-task")
    return composeAndPack(mail)
  },
  "compose-seven-bit": async (mail: MailToNarrow) => {
    const { composeSevenBit } = await import("./emails/compose-task")
    return composeSevenBit(mail)
  },
  "compose-batch": async (mails: (MailToCompose | MailToSign)[]) => {
    const { composeAll } = await import("./emails/compose-task")
    return composeAll(mails)
  },
  "check-content": async (content: MailContent) => {
    const { checkContent } = await import("./emails/content-check-task")
    return checkContent(content)
  },
  parse: async (raw: Uint8Array) => {
    const { parseMail } = await import("./mailbox/parse-task")
    return parseMail(raw)
  },
  "read-parts": async (place: Uint8Array | string) => {
    const { readParts } = await import("./emails/parts-task")
    return readParts(place)
  },
  "read-file": async (file: { place: Uint8Array | string; number: number }) => {
    const { readMailFile } = await import("./emails/parts-task")
    return readMailFile(file)
  },
  "read-submitted": async (mail: MailToRead) => {
    const { readSubmitted } = await import("./smtp/submitted-mail")
    return readSubmitted(mail)
  },
  "parse-body": async (body: PartsToParse) => {
    const { parseBody } = await import("./http/json")
    return parseBody(body)
  },
  render: async (task: RenderTask) => {
    const { renderTemplate } = await import("./templates/render-task")
    return renderTemplate(task)
  },
  "render-templates": async (jobs: RenderJob[]) => {
    const { renderTemplates } = await import("./templates/render-templates-task")
    return renderTemplates(jobs)
  },
  "judge-template": async (texts: TemplateText[]) => {
    const { judgeTemplate } = await import("./templates/judge-task")
    return judgeTemplate(texts)
  },
  "parse-inbound": async (mail: InboundToRead) => {
    const { readInbound } = await import("./inbound/parse-inbound-task")
    return readInbound(mail)
  },
  "read-small-mails": async (mails: SmallMail[]) => {
    const { readSmallMails } = await import("./inbound/small-mail-task")
    return readSmallMails(mails)
  },
  "verify-mail": async (step: VerifyStep) => {
    const { verifyStep } = await import("./inbound/verify-task")
    return verifyStep(step)
  },
})
