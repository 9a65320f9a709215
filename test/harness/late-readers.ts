import { silentSocket } from "./silent-socket"

// `bun late-readers.ts <url>`: in a process of its own, so that neither side waits for the other,
// twelve connections that sleep for five seconds before they read; prints their close codes.
const late = Array.from({ length: 12 }, () => silentSocket(process.argv[2] ?? "", "/", "none"))
for (const one of late) {
  await one.opened
  one.sleep()
}
await Bun.sleep(5000)
for (const one of late) {
  one.wake()
  await one.ended
}
console.log(JSON.stringify(late.map((one) => one.code() ?? null)))
