import { messageOf, RequestError } from "./request-error"
import { call } from "./transport"

/** `unknown`: these credentials may not see it. */
export type StepState = "open" | "done" | "unknown"

export type StepName = "send" | "look" | "webhook" | "domain" | "invite"

export type StepStates = Record<StepName, StepState>

export const NOTHING_DONE: StepStates = {
  send: "open",
  look: "open",
  webhook: "open",
  domain: "open",
  invite: "open",
}

const ONE = { per_page: 1 }

/** How far the project is. A step that was done once is not asked for again. Throws where nothing answers. */
export async function readSteps(
  is_person: boolean,
  known: StepStates = NOTHING_DONE,
): Promise<StepStates> {
  const anyOf = async (name: StepName, count: () => Promise<number>): Promise<StepState> =>
    known[name] === "done" ? "done" : stateOf(count)
  const [send, look, webhook, domain, invite] = await Promise.all([
    anyOf("send", async () => (await call("GET /v1/mailbox", { query: ONE })).data.length),
    anyOf(
      "look",
      async () => (await call("GET /v1/mailbox", { query: { unread: false, ...ONE } })).data.length,
    ),
    anyOf("webhook", async () => (await call("GET /v1/webhooks", { query: ONE })).data.length),
    anyOf("domain", async () => (await call("GET /v1/domains", { query: ONE })).data.length),
    is_person ? anyOf("invite", countColleagues) : ("unknown" as const),
  ])
  return { send, look, webhook, domain, invite }
}

async function stateOf(count: () => Promise<number>): Promise<StepState> {
  try {
    return (await count()) > 0 ? "done" : "open"
  } catch (error) {
    if (error instanceof RequestError && error.status === 403) return "unknown"
    throw error instanceof Error ? error : new Error(messageOf(error))
  }
}

/** Members beside oneself, and invitations. */
async function countColleagues(): Promise<number> {
  const [members, invitations] = await Promise.all([
    call("GET /v1/accounts/me/members", { query: { per_page: 2 } }),
    call("GET /v1/accounts/me/invitations", { query: ONE }),
  ])
  return members.data.length - 1 + invitations.data.length
}
