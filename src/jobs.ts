import { purgeAccount, purgeProject } from "./accounts/purging"
import { complain, mailboxComplain } from "./mailbox/complain"
import * as messages from "./messages/pipeline"
import { type Kept, purgeAccountNow, purgeProjectNow } from "./purge"
import { passwordForgotten, type ResetPost, sendReset } from "./session/password/recovery"
import { bind, type Handlers } from "./store/job-handler"
import { tellOwners } from "./usage/alerts"
import { usageAlert } from "./usage/reservations"
import { resend, webhookResend } from "./webhooks/resend"
import { tellAdmins, webhookWarning } from "./webhooks/warn"

/** Every kind of background work there is, and who does it. */
export const jobTable = (
  { store, blobs }: Kept,
  channels: messages.Channels,
  post: ResetPost,
): Handlers => ({
  ...bind(messages.deliverMessage, {
    run: (payload, job) => messages.deliver(store, channels, payload, job),
    onDead: messages.giveUp,
  }),
  ...bind(mailboxComplain, complain(store)),
  ...bind(usageAlert, tellOwners(store, post.mail)),
  ...bind(webhookResend, resend),
  ...bind(webhookWarning, tellAdmins(store, post.mail)),
  ...bind(passwordForgotten, sendReset(store, post)),
  ...bind(purgeProject, {
    run: async ({ id }) => {
      await purgeProjectNow({ store, blobs }, id)
      return {}
    },
  }),
  ...bind(purgeAccount, {
    run: async ({ id }) => {
      await purgeAccountNow({ store, blobs }, id)
      return {}
    },
  }),
})
