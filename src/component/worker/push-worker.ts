/**
 * The script `/sw.js`. The worker of a page's own origin imports it: it shows what Belfry pushes, opens what a click
 * asks for, and acknowledges. What others push to the same worker it leaves alone.
 */
declare const self: ServiceWorkerGlobalScope

/** The server's public address, which it writes in when it serves the script. */
declare const SERVER_URL: string

/** As Declarative Web Push has it. `data` is what the app gets. */
interface PushPayload {
  web_push: 8030
  notification: NotificationOptions & {
    title?: string
    navigate?: string
    app_badge?: number
    actions?: { action: string; navigate?: string }[]
    data: PushData
  }
}

interface PushData {
  push_id: string
  ack_token: string
}

/** What a shown notification remembers: where a click leads, by the button, and without one by "". */
interface ShownData extends PushData {
  _ack: Record<string, string | undefined>
}

self.addEventListener("push", (event) => {
  const payload = payloadOf(event)
  if (!payload) return
  const { app_badge, data } = payload.notification
  const work = [show(payload), count(app_badge), acknowledge(data, "delivered")]
  event.waitUntil(Promise.allSettled(work))
})

self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event
  const data = shownData(notification)
  if (!data) return
  ended.add(data.push_id)
  notification.close()
  const link = data._ack[action] ?? data._ack[""] ?? "/"
  event.waitUntil(Promise.allSettled([openPage(link), acknowledge(data, "opened")]))
})

/** Notifications that a person clicked, or that another one replaced. Firefox calls them closed, too. */
const ended = new Set<string>()

self.addEventListener("notificationclose", (event) => {
  const data = shownData(event.notification)
  if (data && !ended.has(data.push_id)) event.waitUntil(acknowledge(data, "dismissed"))
})

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew()))

function payloadOf({ data }: PushEvent): PushPayload | undefined {
  try {
    const payload: PushPayload | undefined = data?.json()
    return payload?.web_push === 8030 && payload.notification.data.ack_token ? payload : undefined
  } catch {
    return undefined
  }
}

const shownData = ({ data }: Notification): ShownData | undefined =>
  data?._ack && data.ack_token ? data : undefined

async function show({ notification }: PushPayload) {
  const { title, navigate, ...options } = notification
  if (title === undefined && options.body === undefined) return
  const { actions = [], data } = options
  const links = actions.map((one) => [one.action, one.navigate])
  const _ack = Object.fromEntries([["", navigate], ...links])
  const { tag } = options
  for (const { data: before } of tag ? await self.registration.getNotifications({ tag }) : [])
    ended.add(before?.push_id)
  await self.registration.showNotification(title ?? "", { ...options, data: { ...data, _ack } })
}

/** Beside the notification: a browser without icons of apps may never answer. */
async function count(badge?: number) {
  if (badge !== undefined) await navigator.setAppBadge?.(badge)
}

/** A page that shows it already gets the focus. */
async function openPage(link: string) {
  const { href, protocol } = new URL(link, self.registration.scope)
  if (!/^https?:$/.test(protocol)) return // an override may say anything, also a script
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true })
  const there = pages.find(({ url }) => url === href)
  await (there ? there.focus() : self.clients.openWindow(href))
}

/** Before each try. A browser ends a worker that takes much longer. */
const PAUSES_MS = [0, 1_000, 5_000]

async function acknowledge({ push_id, ack_token }: PushData, event: string) {
  const body = JSON.stringify({ event, ack_token })
  for (const pause of PAUSES_MS) {
    await new Promise((resolve) => setTimeout(resolve, pause))
    const answer = await call(`/v1/push/${push_id}/ack`, { method: "POST", body, keepalive: true })
    if (answer && answer.status < 500 && answer.status !== 429) return
  }
}

/** Undefined where no server answered. */
async function call(path: string, init: RequestInit = {}, token?: string) {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const headers = { "content-type": "application/json", ...authorization }
  const whole: RequestInit = { ...init, headers, credentials: "omit" }
  return fetch(SERVER_URL + path, whole).catch(() => undefined)
}

/** The browser has ended the subscription. Without what the page left, the page renews at its next visit. */
async function renew() {
  const left = await keptDevice()
  if (!left) return
  const { device_id, token } = left
  const answer = await call("/v1/push/webpush/public-key", {}, token)
  if (!answer?.ok) return
  const { public_key: applicationServerKey } = (await answer.json()).data
  const wanted = { userVisibleOnly: true, applicationServerKey }
  const subscription = await self.registration.pushManager.subscribe(wanted)
  const body = JSON.stringify({ device_id, platform: "web", subscription })
  await call("/v1/devices", { method: "POST", body }, token)
}

/** What a page leaves in the database `belfry`, in its store `push`, under the key `device`. */
interface KeptDevice {
  device_id: string
  /** Of the subscriber. */
  token: string
}

const keptDevice = () =>
  new Promise<KeptDevice | undefined>((resolve) => {
    const opening = indexedDB.open("belfry", 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore("push")
    opening.onerror = () => resolve(undefined)
    opening.onsuccess = () => {
      const found = opening.result.transaction("push").objectStore("push").get("device")
      found.onsuccess = () => resolve(found.result)
      found.onerror = () => resolve(undefined)
    }
  })
