/**
 * The limit of both mail servers: smtp-server, whose handlers do nothing. `CERT KEY [PASSWORD]` prints its
 * port. Without a password nobody needs to log in.
 */
import { readFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { SMTPServer } from "smtp-server"

const [cert = "", key = "", password = ""] = process.argv.slice(2)
const server = new SMTPServer({
  cert: readFileSync(cert),
  key: readFileSync(key),
  minVersion: "TLSv1.2",
  size: 15_728_640,
  disableReverseLookup: true,
  authOptional: password === "",
  logger: false,
  onAuth: (login, _, done) =>
    login.password === password ? done(null, { user: login.username }) : done(new Error("no")),
  onData(stream, _, done) {
    stream.resume()
    stream.once("end", () => done())
  },
})
server.listen(0, "127.0.0.1", () => console.log((server.server.address() as AddressInfo).port))
