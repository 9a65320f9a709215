/** A name server that knows no name: every question is answered with NXDOMAIN at once. */
export async function emptyDns() {
  const socket = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: {
      data(socket, question, port, address) {
        const answer = Buffer.from(question)
        answer.writeUInt16BE(0x8183, 2) // RFC 1035, 4.1.1: a response, recursion, no such name
        answer.writeUInt16BE(0, 10) // none of the additional records of the question
        socket.send(answer, port, address)
      },
    },
  })
  return {
    server: `127.0.0.1:${socket.port}`,
    [Symbol.dispose]: () => socket.close(),
  }
}
