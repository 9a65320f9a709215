import type { JobHandler } from "../jobs/jobs"
import { rowById } from "../store/rows"
import type { AuthParts } from "./auth-parts"
import { environmentById } from "./environments"
import type { SeenDevice } from "./new-device"
import { prepareNotice } from "./notices"
import { userSessions, users } from "./tables"

/** Mails the user from where somebody signed in. */
export const mailNewDevice = (
  parts: Pick<AuthParts, "store" | "mail">,
): JobHandler<SeenDevice> => ({
  async run({ session_id }) {
    const { read } = parts.store
    const session = await rowById(read, userSessions, session_id)
    const user = session && (await rowById(read, users, session.user_id))
    const environment = session && (await environmentById(read, session.environment_id))
    if (!user || !environment) return {}
    const { ip, user_agent } = session
    const notice = { type: "new_device", client: { ip, user_agent } } as const
    const mail = await prepareNotice(parts, environment, user, notice)
    return { done: (tx) => mail.accept(tx) }
  },
})
