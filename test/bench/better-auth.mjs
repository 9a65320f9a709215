/**
 * How many sessions better-auth proves a second: `node better-auth.mjs SECONDS IN_FLIGHT`, also on Bun. Its store is a
 * SQLite of the runtime's own kind, in a file, and it asks it at each look, as it does unless it is told to trust the cookie for a while.
 */
import { betterAuth } from "better-auth"
import { getMigrations } from "better-auth/db/migration"

const [seconds, in_flight] = process.argv.slice(2).map(Number)
const { Database } = process.versions.bun
  ? await import("bun:sqlite")
  : { Database: (await import("better-sqlite3")).default }
const database = new Database(`./${process.versions.bun ? "bun" : "node"}-${process.pid}.db`)
database.exec("PRAGMA journal_mode = WAL")

const options = {
  database,
  secret: "kE8s-2vQx_71LmZrT0aYbNcWdUfHgJpO",
  baseURL: "http://127.0.0.1",
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
}
const auth = betterAuth(options)
await (await getMigrations(options)).runMigrations()
const body = { email: "ann@example.com", password: "Quiet-River-42", name: "Ann" }
const { headers: made } = await auth.api.signUpEmail({ body, returnHeaders: true })
const cookie = made.getSetCookie().map((one) => one.split(";")[0])
const headers = new Headers({ cookie: cookie.join("; ") })

async function look(ms) {
  const end = performance.now() + ms
  let count = 0
  const lane = async () => {
    while (performance.now() < end) {
      const found = await auth.api.getSession({ headers })
      if (found?.user.email !== body.email) throw new Error("the session is not known")
      count += 1
    }
  }
  await Promise.all(Array.from({ length: in_flight }, lane))
  return (count / ms) * 1000
}

await look(1000)
console.log(await look(seconds * 1000))
process.exit(0)
