import { enqueueAll, type JobHandler, type JobKind } from "../jobs/jobs"
import { inSteps } from "../store/in-steps"
import type { Store, Tx } from "../store/store"
import { notifyChoice } from "../subscribers/chosen-preferences"
import { unexpired } from "../suppressions/look-up"
import { type ConsentSecrets, recordConsent } from "./consents"
import { allow, end, subscribersWithNumber } from "./linked-subscribers"

const CHANNEL = "sms"

/** Whether the person behind a phone number wants the texts of a project. */
export interface NumberChoice {
  account_id: string
  project_id: string
  /** In E.164. */
  number: string
  is_wanted: boolean
  /** In which way it was said: a keyword, or `provider`. */
  reason: string
  /** What shows that it was so. */
  proof: string
}

/** A number may belong to thousands of subscribers, and each of them made the choice. */
export const numberChoice: JobKind<NumberChoice> = {
  name: "number.choice",
  schedule: (attempt) => Math.min(2 ** attempt, 300),
}

/** Makes the choice for every subscriber with the number, soon. The suppression is the caller's, in the same transaction. */
export async function planNumberChoices(tx: Tx, list: NumberChoice[]): Promise<void> {
  const work = list.map((payload) => ({ payload, project_id: payload.project_id }))
  if (work.length > 0) await enqueueAll(tx, numberChoice, work)
}

/** Subscribers of one transaction. */
const AT_ONCE = 100

/** Ends or allows texts for all subscribers with the number. A second time changes nothing. */
export const chooseByNumber = (
  store: Store,
  secrets: ConsentSecrets,
): JobHandler<NumberChoice> => ({
  async run(choice) {
    let after: string | undefined
    await inSteps(async () => {
      const ids = await store.tx((tx) => chooseSome(tx, secrets, choice, after))
      after = ids.at(-1)
      return ids.length < AT_ONCE ? 0 : ids.length
    }, undefined)
    return {}
  },
})

/** The subscribers that follow the given one. Returns the ids of those that it looked at. */
async function chooseSome(
  tx: Tx,
  secrets: ConsentSecrets,
  choice: NumberChoice,
  after: string | undefined,
): Promise<string[]> {
  const { account_id, project_id, is_wanted, reason, proof } = choice
  const people = await subscribersWithNumber(tx, choice, { after, limit: AT_ONCE })
  if (people.length === 0 || !(await stillHolds(tx, choice))) return []
  for (const one of people) {
    const is_changed = is_wanted
      ? await allow(tx, one, CHANNEL, null, null)
      : await end(tx, one, CHANNEL, null, reason)
    if (!is_changed) continue
    const said = { project_id, channel: CHANNEL, scope: null, source: CHANNEL, ip: null } as const
    const action = is_wanted ? "granted" : "withdrawn"
    await recordConsent(tx, secrets, { subscriber_id: one.row.id, ...said, action, proof })
    const type = is_wanted ? "resubscribed" : "unsubscribed"
    const told = { channel: CHANNEL, scope: null, reason, type } as const
    await notifyChoice(tx, { account_id, subscriber: one.row, ...told })
  }
  return people.map(({ row }) => row.id)
}

/** The person may have said the opposite since: the suppression is the last word. */
async function stillHolds(tx: Tx, { project_id, number, is_wanted }: NumberChoice) {
  const rows = await unexpired(tx, project_id, CHANNEL, [number])
  return is_wanted
    ? !rows.some(({ reason }) => reason === "unsubscribe")
    : rows.some(({ scope_type }) => scope_type === "project")
}
