/** A shop whose pages subscribe to pushes, on another origin than the server. */
export function startPushSite(server_url: string, token: () => Promise<string>) {
  const files: Record<string, [type: string, text: string]> = {
    "/worker.js": ["text/javascript", `importScripts("${server_url}/sw.js")`],
    "/shop.js": ["text/javascript", SHOP.replace("SERVER", server_url)],
  }
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === "/belfry-token") return new Response(await token())
      const [type, text] = files[pathname] ?? ["text/html;charset=utf-8", PAGE]
      return new Response(text, { headers: { "content-type": type } })
    },
  })
  return {
    /** By this name, so that the host differs, too. */
    origin: `http://localhost:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>
<link rel="icon" href="data:,"><button id="ask">Notify me</button>
<script type="module" src="/shop.js"></script></html>`

/** As the guide has it. */
const SHOP = `
const server = "SERVER"
const token = await (await fetch("/belfry-token")).text()
const headers = { authorization: "Bearer " + token, "content-type": "application/json" }

async function subscribe() {
  const worker = await navigator.serviceWorker.register("/worker.js")
  await navigator.serviceWorker.ready
  const answer = await fetch(server + "/v1/push/webpush/public-key", { headers })
  const { public_key: applicationServerKey } = (await answer.json()).data
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
  const device_id = (localStorage.belfry_device ??= crypto.randomUUID())
  const body = JSON.stringify({ device_id, platform: "web", subscription })
  const made = await fetch(server + "/v1/devices", { method: "POST", headers, body })
  window.registered = made.status
  const base = indexedDB.open("belfry", 1)
  base.onupgradeneeded = () => base.result.createObjectStore("push")
  base.onsuccess = () =>
    base.result.transaction("push", "readwrite").objectStore("push").put({ device_id, token }, "device")
}

ask.onclick = async () => (await Notification.requestPermission()) === "granted" && subscribe()`
