import { connect, type Socket } from "node:net"
import { deadline } from "./deadline"

/**
 * Says `dead` when the host keeps silent for `connect_ms`, until the returned function is called.
 * `fetch` does not tell when it is connected, so half the time is only waited; then a connection of
 * our own asks whether anybody is there, has the other half for it, and is closed. A refusal is an
 * answer, too: whether the request succeeds is not judged here.
 */
export function watchReach(
  address: string,
  port: number,
  connect_ms: number,
  dead: () => void,
): () => void {
  const half = connect_ms / 2
  let socket: Socket | undefined
  const finish = () => {
    drop()
    socket?.destroy()
  }
  let drop = deadline(half, () => {
    socket = connect({ host: address, port })
    socket.once("connect", finish)
    socket.on("error", finish) // for good: a socket without a listener throws
    drop = deadline(half, () => {
      finish()
      dead()
    })
  })
  return finish
}
