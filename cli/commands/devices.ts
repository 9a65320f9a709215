import { metadata } from "../lib/body-flags"
import { deviceColumns } from "../lib/device-text"
import { usage } from "../lib/errors"
import { flag, type PlainOptions } from "../lib/field-flags"
import { IDEMPOTENCY_KEY } from "../lib/flags"
import { objectOrFile } from "../lib/input"
import { asks, deletes, own, type PlainFlags, row } from "../lib/resource"
import { batchOf } from "./batch"

const ABOUT: PlainFlags = {
  metadata,
  token: "token that the push service gave the app",
  app_version: "version of the app",
  os_version: "version of the system",
  subscription: flag<string>(
    ["--subscription <json>", "of Web Push, as the browser gives it: JSON, or @file"],
    objectOrFile,
  ),
  locale: "language as a BCP 47 tag, for example en or de-AT",
  timezone: "time zone, for example Europe/Vienna",
}

const batch = batchOf({
  route: "POST /v1/devices/batch",
  fields: ["total", "succeeded", "failed", "results"],
  list: "devices",
  done: "registered",
  next: () => "devices list",
})

const removed = ({ deleted }: { deleted: number }) =>
  `deleted ${deleted} ${deleted === 1 ? "device" : "devices"}`

/** Removes the devices of a user in the place of one device. */
const ofUser = ({ userId }: PlainOptions) =>
  typeof userId === "string" &&
  row("rm", "DELETE /v1/devices/user/{user_id}", {
    params: { user_id: userId },
    confirm: asks(() => `All devices of ${userId} will be deleted.`, "delete"),
    done: removed,
  })

export const deviceRows = [
  row("list", "GET /v1/devices", {
    about: "list the devices that get push messages, newest first",
    example: ["--user-id user-42", "--status expired --json=device_id,status_reason"],
    aliases: { user_id: "user-id" },
    columns: deviceColumns,
    next: ([first]) => first && `devices get ${first.id}`,
  }),
  row("get <device>", "GET /v1/devices/{device_id}", {
    about: "show a device, by the name that its app gave it or by its id",
  }),
  row("register", "POST /v1/devices", {
    about: "register a device; a known --device-id is changed",
    example: [
      "--user-id user-42 --platform android --token …",
      "--user-id user-42 --platform web --subscription @subscription.json",
    ],
    flags: {
      ...ABOUT,
      device_id: "name of the device (default: a new one)",
      user_id: "user whose device it is",
      app_id: "id of the app, which is the topic of APNs",
      device_name: "name that people know it by",
    },
    aliases: { user_id: "user-id" },
    done: ({ id, device_id }) => `registered ${device_id} (${id})`,
    next: ({ id }) => `push send Hello --device-id ${id}`,
  }),
  own("batch <file>", batch, {
    about: "register up to 1,000 devices from a JSON array or NDJSON; exit 8 if some are refused",
    word: ["devices.json", "-"],
    example: ["", "< devices.ndjson"],
    options: [IDEMPOTENCY_KEY],
  }),
  row("update <device>", "PATCH /v1/devices/{device_id}", {
    example: ["--token …", "--enabled off"],
    flags: { ...ABOUT, enabled: "switch the device on or off" },
    done: ({ device_id }) => `changed ${device_id}`,
  }),
  row("unlink <device>", "POST /v1/devices/{device_id}/unlink", {
    about: "keep a device and take its user away, as at a sign-out",
    done: ({ device_id }) => `${device_id} has no user any more`,
  }),
  row("rm [device]", "DELETE /v1/devices/{device_id}", {
    about: "delete a device, or all devices of a user",
    ...deletes((name) => `The device ${name} will get no push messages.`),
    word: ["phone-1", ""],
    example: ["--yes", "--user-id user-42 --yes"],
    options: [["--user-id <id>", "user whose devices are deleted"]],
    instead(options, [device]) {
      if ((device === undefined) === (options.userId === undefined))
        throw usage("give either a device or --user-id")
      return ofUser(options)
    },
  }),
  row("stats", "GET /v1/devices/stats", {
    about: "count the devices by status, platform and provider",
  }),
]
