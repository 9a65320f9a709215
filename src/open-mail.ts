import { firstProject } from "./accounts/first"
import { channelTable } from "./channels"
import type { Blobs } from "./core/blobs"
import { hostAndPort, type Settings } from "./core/config"
import type { Secrets } from "./core/secrets"
import type { Workers } from "./core/workers"
import { MAILBOX_DOMAIN, type SendRules } from "./emails/prepare"
import { openProvider, openSandbox } from "./emails/providers/open"
import { systemMail } from "./emails/system-mail"
import { plan } from "./mailbox/complain"
import { type MailboxServer, openMailbox } from "./mailbox/server"
import type { Store } from "./store/store"

export interface MailGround {
  settings: Settings
  mode: "up" | "serve"
  store: Store
  secrets: Secrets
  workers: Workers
  blobs: Blobs
}

/** The way of mail: embedded mailbox, providers, the channels on them, and what a sender may do. */
export async function openMail(ground: MailGround, undo: (() => unknown)[]) {
  const { settings, mode, store, secrets, workers, blobs } = ground
  const mailbox = await startMailbox(settings, { store, secrets }, undo)
  const provider = openProvider(settings, mailbox?.port ?? null)
  undo.push(() => provider.close())
  const sandbox = openSandbox(mailbox?.port ?? null)
  undo.push(() => sandbox?.close())
  const rules = rulesOf(settings, mode)
  const mail = systemMail(secrets, {
    system_from: settings.system_from,
    to_mailbox: rules.to_mailbox,
  })
  const channels = channelTable({ store, secrets, workers, blobs, provider, sandbox })
  return { mailbox, rules, mail, channels }
}

async function startMailbox(
  settings: Settings,
  { store, secrets }: Pick<Storage, "store" | "secrets">,
  undo: (() => unknown)[],
) {
  if (!settings["mailbox.enabled"]) return undefined
  let fallback: string | undefined
  const server: MailboxServer = await openMailbox({
    store,
    secrets,
    listen: hostAndPort(settings["mailbox.listen"]),
    fallback_project: async () => {
      fallback ??= (await firstProject(store.read))[0]?.project_id // there may be none yet
      return fallback
    },
    complained: (message_id) => plan(store, message_id),
  })
  undo.push(() => server.close())
  return server
}

function rulesOf(settings: Settings, mode: MailGround["mode"]): SendRules {
  const to_mailbox = settings["delivery.provider"] === "mailbox"
  return {
    sending_domains: new Set(settings.sending_domains.filter((name) => name !== MAILBOX_DOMAIN)),
    to_mailbox,
    mailbox_takes_all: to_mailbox && mode === "up",
    has_mailbox: settings["mailbox.enabled"],
  }
}
