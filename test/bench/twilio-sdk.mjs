/**
 * A process that sends by Twilio's own client, on Node or Bun: `URL WARM MESSAGES`, with the text as JSON on
 * stdin. Sends `WARM` texts for nobody's clock, then prints how many a second it sends of the others.
 */
import twilio from "twilio"

const IN_FLIGHT = 20

const [url, ...counts] = process.argv.slice(2)
const [warm, messages] = counts.map(Number)
const text = JSON.parse(await new Response(process.stdin).text())
const client = twilio(`AC${"0".repeat(32)}`, "0".repeat(32))
client.api.baseUrl = url

async function send(count) {
  let left = count
  const lane = async () => {
    while (left > 0) {
      left -= 1
      await client.messages.create(text)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

await send(warm)
const begun = performance.now()
await send(messages)
console.log((messages / (performance.now() - begun)) * 1000)
process.exit(0)
