import { mailCheckText } from "../lib/checks-text"
import { exits } from "../lib/errors"
import { confirm } from "../lib/prompts"
import { asks, row } from "../lib/resource"

/** The embedded mailbox: the commands that are plain. */
export const mailboxRows = [
  row("read <id>", "PATCH /v1/mailbox/{mail_id}", {
    about: "mark a mail as read, or with --unread as unread again",
    flags: { read: false },
    options: (command) => command.option("--unread", "mark it as unread"),
    body: ({ unread }) => ({ read: unread !== true }),
    done: ({ id, read }) => `marked ${id} as ${read ? "read" : "unread"}`,
  }),
  row("rm <id>", "DELETE /v1/mailbox/{mail_id}", {
    about: "delete one mail from the mailbox",
    example: "--yes",
    confirm: asks((id) => `The mail ${id} will be deleted from the mailbox now.`, "delete"),
    done: ({ id }) => `deleted ${id}`,
  }),
  row("check <id>", "POST /v1/mailbox/{mail_id}/check", {
    about: "check a mail: programs that lack what it uses, content, size; exit 1 for a dead link",
    example: ["--links", ""],
    flags: { links: false },
    options: (command) => command.option("--links", "ask the servers of the links, too"),
    body: ({ links }) => ({ links: links === true }),
    shown: mailCheckText,
    exit: ({ links }) => (links?.some(({ ok }) => ok === false) ? exits.failed : exits.done),
  }),
  row("release <id>", "POST /v1/mailbox/{mail_id}/release", {
    about: "send a caught mail to a real provider, as it stands",
    example: "--to ann@acme.test",
    flags: {
      to: "recipient (default: that of the mail)",
      provider: "id of the provider (default: the first one that is no mailbox)",
    },
    done: ({ status, id }) => `${status}  ${id}`,
    next: ({ id }) => `emails tail ${id}`,
  }),
  row("clear", "DELETE /v1/mailbox", {
    about: "delete the project's mail from the mailbox, or only that to one recipient",
    example: ["--yes", "--to ann@mailbox.test --yes"],
    flags: { to: "delete only mail to this address" },
    confirm: async (context, _, __, { to }) => {
      const which = to ? `all mail to ${to}` : "all mail of the project"
      await confirm(context, `This deletes ${which} from the mailbox.`, "clear")
      return undefined
    },
    done: ({ deleted }) => `deleted ${deleted} ${deleted === 1 ? "mail" : "mails"}`,
  }),
]
