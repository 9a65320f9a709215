import type { Server } from "bun"

/** One POST that arrived, in the order of arrival. */
export interface Received {
  id: string
  headers: Record<string, string>
  body: string
  path: string
}

export type Answer = (received: Received, number: number) => Response | Promise<Response>

/** Somebody's endpoint on the loopback. `number` counts the requests from 1. */
export interface Receiver extends Disposable {
  url: string
  received: Received[]
  /** What it answers from now on. */
  answer: Answer
  /** Resolves when so many requests have arrived. */
  arrived(count: number): Promise<void>
}

export function receiver(answer: Answer = () => new Response("thanks")): Receiver {
  const received: Received[] = []
  const waiting = new Set<{ count: number; resolve: () => void }>()
  const server: Server<undefined> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const one: Received = {
        id: request.headers.get("webhook-id") ?? "",
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
        path: new URL(request.url).pathname,
      }
      received.push(one)
      for (const wait of waiting) if (received.length >= wait.count) wait.resolve()
      return fake.answer(one, received.length)
    },
  })
  const fake: Receiver = {
    url: `http://127.0.0.1:${server.port}/hook`,
    received,
    answer,
    arrived(count) {
      return new Promise((resolve) => {
        if (received.length >= count) return resolve()
        waiting.add({ count, resolve })
      })
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
  return fake
}

/** Never answers. */
export const hangs: Answer = () => new Promise(() => {})
