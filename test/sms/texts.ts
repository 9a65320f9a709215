import { eq } from "drizzle-orm"
import { now } from "../../src/core/time"
import { OVER } from "../../src/jobs/work-item"
import { accept } from "../../src/messages/pipeline"
import { messages } from "../../src/messages/tables"
import { newText } from "../../src/sms/prepare"
import type { Store } from "../../src/store/store"
import type { TestProject } from "../harness/service"

export const OURS = "+14155550199"

interface KnownText {
  to: string
  body?: string
  subscriber_id?: string
  category?: string
  scheduled_at?: string
}

/** A text to a number, accepted and not sent. */
export async function addText(
  store: Store,
  { account_id, project_id }: Pick<TestProject, "account_id" | "project_id">,
  { to, body = "Ding", subscriber_id, category, scheduled_at }: KnownText,
): Promise<string> {
  const message = newText({
    ...{ account_id, project_id, api_key_id: null, sandbox: false, to, from: OURS, body },
    ...{ stream: "transactional", source: "api", template_id: null, envelope: {} },
    ...{ subscriber_id: subscriber_id ?? null, category: category ?? null },
    scheduled_at: scheduled_at ?? null,
  })
  await store.tx((tx) => accept(tx, [message]))
  return message.id
}

/** As if the person with the number had written it. */
export async function addReceived(...given: Parameters<typeof addText>): Promise<string> {
  const [store] = given
  const id = await addText(...given)
  const change = { status: "received", state: OVER, units: 0, updated_at: now() } as const
  await store.tx((tx) => tx.update(messages).set(change).where(eq(messages.id, id)))
  return id
}
