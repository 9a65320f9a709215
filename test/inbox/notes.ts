import { acceptNotes, type InboxNote, newNote } from "../../src/inbox/accept"
import type { InboxContent } from "../../src/inbox/tables"
import type { TestProject, TestService } from "../harness/service"

interface GivenNote extends Partial<Pick<InboxNote, "shared_id" | "collapse_key" | "expires_at">> {
  content?: Partial<InboxContent>
  category?: string
  tags?: string[]
}

const PLAIN: InboxContent = {
  ...{ title: "Your order", body: null, action_url: null, action_label: null, actions: [] },
  ...{ icon: null, image_url: null, priority: "normal", data: {} },
}

/** A message in the inbox of a subscriber, as a send makes it. Returns its id. */
export async function addNote(
  { store }: Pick<TestService, "store">,
  { account_id, project_id }: Pick<TestProject, "account_id" | "project_id">,
  subscriber_id: string,
  { content = {}, category, tags = [], ...more }: GivenNote = {},
): Promise<string> {
  const message = newNote({
    ...{ account_id, project_id, api_key_id: null, sandbox: false, stream: "transactional" },
    ...{ source: "api", category: category ?? null, template_id: null, tags, metadata: {} },
    ...{ subscriber: { id: subscriber_id, external_id: "ann" }, envelope: {} },
    note: {
      ...{ content: { ...PLAIN, ...content }, shared_id: null, collapse_key: null },
      ...{ expires_at: null, ...more },
    },
  })
  const [accepted] = await store.tx((tx) => acceptNotes(tx, [{ message, allowance: null }]))
  if (!accepted || !("id" in accepted)) throw new Error("the message was refused")
  return accepted.id
}
