import { serveTasks } from "./core/worker-task"

/** As `emails/mailer-orders.ts` says it: only the mailer loads that. */
const MAILER = "--mailer"

/** For work that costs CPU, or waits for the disk. Libraries load with the first task that needs them. */
const TASKS = {
  "copy-log": async () => (await import("./store/file-tasks")).copyLog,
  "check-file": async () => (await import("./store/file-tasks")).checkFile,
  "read-rows": async () => (await import("./store/read-task")).readRows,
  "close-reader": async () => (await import("./store/read-task")).closeReader,
  "copy-sqlite": async () => (await import("./store/database-copy")).copySqlite,
  "copy-postgres": async () => (await import("./store/database-copy")).copyPostgres,
  "inspect-copy": async () => (await import("./store/database-copy")).inspectCopy,
  "pack-archive": async () => (await import("./operations/backup/pack-task")).packArchive,
  compose: async () => (await import("./emails/compose-task")).composeMail,
  "check-content": async () => (await import("./emails/content-check-task")).checkContent,
  "advice-content": async () => (await import("./ai/advice/content-facts-task")).contentFacts,
  "text-from-html": async () => (await import("./lib/text-from-html")).textFromHtml,
  parse: async () => (await import("./mailbox/parse-task")).parseMail,
  "read-attachment": async () => (await import("./mailbox/parse-task")).readAttachment,
  "check-mail": async () => (await import("./mailbox/check-task")).checkMail,
  "remote-images": async () => (await import("./mailbox/view-task")).remoteImages,
  "show-mail": async () => (await import("./mailbox/view-task")).showMail,
  "read-parts": async () => (await import("./emails/parts-task")).readParts,
  "read-file": async () => (await import("./emails/parts-task")).readMailFile,
  "read-submitted": async () => (await import("./smtp/submitted-mail")).readSubmitted,
  "parse-body": async () => (await import("./http/json")).parseBody,
  transform: async () => (await import("./templates/transform-task")).transformInThread,
  "render-templates": async () =>
    (await import("./templates/render-templates-task")).renderTemplates,
  "validate-template": async () =>
    (await import("./templates/validate-template-task")).validateTemplate,
  "parse-inbound": async () => (await import("./inbound/parse-inbound-task")).readInbound,
  "read-small-mails": async () => (await import("./inbound/verify-task")).readSmallMails,
  "verify-mail": async () => (await import("./inbound/verify-task")).verifyMail,
}

if (process.argv.includes(MAILER)) (await import("./emails/mailer-thread")).serveMailer()
else serveTasks(TASKS)
