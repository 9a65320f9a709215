import type { Client, Reply } from "../harness/client"

/** The types of the events of a project about its inboxes, oldest first. */
export async function inboxEvents(project: Pick<Client, "get">): Promise<string[]> {
  const { body } = await project.get("/v1/events?types=inbox.*&limit=100")
  return body.data.map(({ type }: { type: string }) => type)
}

/** The one message of the subscriber. */
export async function onlyMessage(project: Pick<Client, "get">, external_id: string) {
  const { body } = await project.get(`/v1/inbox?external_id=${external_id}`)
  if (body.data.length !== 1) throw new Error(`there are ${body.data.length} messages`)
  return body.data[0]
}

/** The codes of what is wrong with a request, by path; of a single problem the code of the answer. */
export const codesOf = ({ body: { error } }: Reply): Record<string, string> =>
  error.details.fields
    ? Object.fromEntries(
        error.details.fields.map(({ path, code }: Record<string, string>) => [path, code]),
      )
    : { [error.details.field]: error.code }
