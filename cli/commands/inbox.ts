import { row } from "../lib/resource"

/** What apps need to show the in-app inbox of a subscriber. */
export const inboxRows = [
  row("token", "POST /v1/subscriber-inbox/token", {
    about: "make a token with which an app acts for one subscriber",
    example: "--external-id user_42 --ttl-seconds 3600",
    shown: ({ token }) => token,
    brief: ({ token }) => token,
  }),
]
