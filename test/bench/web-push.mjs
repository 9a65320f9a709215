/**
 * A process that sends by the package `web-push`, on Node or Bun: `WARM MESSAGES IN_FLIGHT`, with subscription,
 * payload and options as JSON on stdin. Prints how many a second it sends. It keeps nothing.
 */
import webpush from "web-push"

const [warm, messages, in_flight] = process.argv.slice(2).map(Number)
const { subscription, payload, options } = JSON.parse(await new Response(process.stdin).text())

async function send(count) {
  let left = count
  const lane = async () => {
    while (left > 0) {
      left -= 1
      await webpush.sendNotification(subscription, payload, options)
    }
  }
  await Promise.all(Array.from({ length: in_flight }, lane))
}

await send(warm)
const begun = performance.now()
await send(messages)
console.log((messages / (performance.now() - begun)) * 1000)
process.exit(0)
