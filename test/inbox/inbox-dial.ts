import { markOne } from "../../src/inbox/inbox"
import type { Mark } from "../../src/inbox/marks"
import type { TestProject, TestService } from "../harness/service"
import { type Dial, dial, type TestSocket } from "../harness/socket"
import { addSubscriber, tokenOf } from "./subscriber-app"

export const PROTOCOL = "svc.inbox.v1"
export const PATH = "/v1/subscriber-inbox/ws"

/** Opens the socket of an inbox, without signing in. */
export const knock = (url: string, query = "", given: Dial = {}): Promise<TestSocket> =>
  dial(url, query, { protocols: [PROTOCOL], ...given, path: PATH })

/** Opens it, and signs in with the first frame. */
export async function enter(url: string, token: string, after_seq?: number): Promise<TestSocket> {
  const socket = await knock(url)
  socket.send({ type: "auth", token, ...(after_seq !== undefined && { after_seq }) })
  await typed(socket, "ready")
  return socket
}

/** The first frame of a type, past or to come. */
export const typed = (socket: TestSocket, type: string) =>
  socket.next((frame) => frame.type === type)

/** The frame of a change, past or to come. */
export const numbered = (socket: TestSocket, seq: number) =>
  socket.next((frame) => frame.seq === seq || frame.upto_seq === seq)

/** The numbers of the changes that came, in their order. */
export const numbers = ({ frames }: Pick<TestSocket, "frames">): number[] =>
  frames.flatMap(({ seq, upto_seq }) => (seq ?? upto_seq ?? []) as number | [])

/** A subscriber with a token, and what its project does with its inbox. */
export async function person(service: TestService, project: TestProject) {
  const subscriber_id = await addSubscriber(service, project)
  const token = await tokenOf(project, subscriber_id)
  const send = async (title: string, more: object = {}): Promise<string> => {
    const { body } = await project.post("/v1/inbox", { subscriber_id, title, ...more })
    return body.data.id
  }
  const { project_id } = project
  const owner = { project_id, subscriber_id }
  const mark = (id: string, as: Mark) => service.store.tx((tx) => markOne(tx, owner, id, as))
  const remove = (id: string) => project.call("DELETE", `/v1/inbox/${id}`)
  return { subscriber_id, token, send, mark, remove, owner }
}
