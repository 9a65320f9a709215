/** `is`: step_key, type and position. */
const step = (is: string, config: object, more: object = {}) => {
  const [step_key, type, position] = is.split(" ")
  return { step_key, type, config, name: `Step ${step_key}`, position: Number(position), ...more }
}
const inside = (parent_step_key: string, branch_path: string, more: object = {}) => {
  return { parent_step_key, branch_path, ...more }
}

const UUIDS = { type: "array", items: { type: "object", properties: { id: { format: "uuid" } } } }
const PLAN = { type: "string", enum: ["free", "pro"] }
const HOURS = { amount: 3, unit: "hours" }
const NUDGE = { title: "Hi", body: "{{payload.plan}}", data: { a: "b" }, url: "/start" }
const WELCOME = {
  ...{ key: "welcome", name: "Welcome", description: "Three mails for people who are new." },
  ...{ is_critical: false, category: "product", tags: ["new", "onboarding"] },
  trigger_schema: { type: "object", properties: { plan: PLAN, items: UUIDS }, required: ["plan"] },
  steps: [
    step("hello email 0", { subject: "Hello {{subscriber.name}}", html: "{{payload.plan}}" }),
    step("pause delay 1", { amount: 2, unit: "days" }),
    step("read branch 2", { step_key: "hello", condition: "read", within: HOURS }),
    step("more email 0", { template_id: "tips", from: "Ann <a@shop.test>" }, inside("read", "yes")),
    step("nudge push 0", NUDGE, inside("read", "no", { on_error: "continue" })),
    step("end stop 1", {}, inside("read", "no")),
  ],
}

const FREE = { field: "subscriber.metadata.plan", op: "in", value: ["free", null, 0] }
const VIP = { any: [{ field: "payload.total", op: "gte", value: 100 }, { not: FREE }] }
const SEVERAL = { field: "steps.gather.count", op: "gt", value: 1 }
const PHONE = { all: [{ field: "subscriber.phone", op: "exists" }, SEVERAL] }
const MORNINGS = { at: "09:00", days: ["mon", "fri"] }
const NOTE = {
  ...{ title: "Orders", body: "{{#each digest.items}}{{id}}{{/each}}", action_url: "/orders" },
  ...{ action_label: "Show", category: "orders", priority: "high" },
}
const DATA = { id: "{{payload.order.id}}", list: ["{{payload.a}}", 1, null] }
const ORDERS = {
  ...{ key: "orders", name: "Orders" },
  steps: [
    step("few throttle 0", { limit: 5, window: HOURS, group_by: "order.id" }),
    step("gather digest 1", { window: MORNINGS, group_by: "customer", max_items: 20 }),
    step("vip branch 2", { rule: VIP }),
    step("text sms 0", { body: "{{digest.count}}" }, inside("vip", "yes", { conditions: PHONE })),
    step("note in_app 0", NOTE, inside("vip", "no")),
    step("crm event 3", { name: "order.told", data: DATA }, { parent_step_key: null }),
  ],
}

const ANN = { email: "a@shop.test", name: null }
const GERMAN = { field: "subscriber.locale", op: "starts_with", value: "de" }
const REMINDER = {
  ...{ key: "reminder", name: "Reminder" },
  steps: [
    step("until delay 0", { until: "{{payload.starts_at}}" }),
    step("evening delay 1", { at: "18:30" }),
    step("together digest 2", { window: { amount: 10, unit: "minutes" } }),
    step("mail email 3", { subject: "Soon", text: "Soon.", from: ANN }),
    step("answered branch 4", { step_key: "mail", condition: "replied" }),
    step("plain sms 0", { template_id: "soon" }, inside("answered", "no", { conditions: GERMAN })),
  ],
}

/** Right workflows that together have everything a workflow can have. */
export const sampleWorkflows = [WELCOME, ORDERS, REMINDER]
