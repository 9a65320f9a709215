const step = (step_key: string, type: string, config: object, more: object = {}) => ({
  ...{ step_key, type, config },
  name: `Step ${step_key}`,
  position: 0,
  ...more,
})

const inside = (parent_step_key: string, branch_path: "yes" | "no", position = 0) => ({
  ...{ parent_step_key, branch_path, position },
})

const WELCOME = {
  key: "welcome",
  name: "Welcome",
  description: "Three mails for people who are new.",
  is_critical: false,
  category: "product",
  tags: ["new", "onboarding"],
  trigger_schema: {
    type: "object",
    properties: {
      plan: { type: "string", enum: ["free", "pro"] },
      items: { type: "array", items: { type: "object", properties: { id: { format: "uuid" } } } },
    },
    required: ["plan"],
  },
  steps: [
    step("hello", "email", {
      subject: "Hello {{subscriber.name}}",
      html: "<p>{{payload.plan}}</p>",
    }),
    step("pause", "delay", { amount: 2, unit: "days" }, { position: 1 }),
    step(
      "read",
      "branch",
      { step_key: "hello", condition: "read", within: { amount: 3, unit: "hours" } },
      { position: 2 },
    ),
    step(
      "more",
      "email",
      { template_id: "tips", from: "Ann <ann@shop.test>" },
      inside("read", "yes"),
    ),
    step(
      "nudge",
      "push",
      { title: "Hi", body: "{{payload.plan}}", data: { a: "b" }, url: "/start" },
      { ...inside("read", "no"), on_error: "continue" },
    ),
    step("end", "stop", {}, inside("read", "no", 1)),
  ],
}

const RULES = {
  key: "orders",
  name: "Orders",
  steps: [
    step("few", "throttle", {
      limit: 5,
      window: { amount: 1, unit: "days" },
      group_by: "order.id",
    }),
    step(
      "gather",
      "digest",
      { window: { at: "09:00", days: ["mon", "fri"] }, group_by: "customer", max_items: 20 },
      { position: 1 },
    ),
    step(
      "vip",
      "branch",
      {
        rule: {
          any: [
            { field: "payload.total", op: "gte", value: 100 },
            { not: { field: "subscriber.metadata.plan", op: "in", value: ["free", null, 0] } },
          ],
        },
      },
      { position: 2 },
    ),
    step(
      "text",
      "sms",
      { body: "{{digest.count}} orders" },
      {
        ...inside("vip", "yes"),
        conditions: {
          all: [
            { field: "subscriber.phone", op: "exists" },
            { field: "steps.gather.count", op: "gt", value: 1 },
          ],
        },
      },
    ),
    step(
      "note",
      "in_app",
      {
        title: "Orders",
        body: "{{#each digest.items}}{{id}}{{/each}}",
        action_url: "/orders",
        action_label: "Show",
        category: "orders",
        priority: "high",
      },
      inside("vip", "no"),
    ),
    step(
      "crm",
      "event",
      {
        name: "order.told",
        data: { id: "{{payload.order.id}}", list: ["{{payload.a}}", 1, null] },
      },
      { position: 3, parent_step_key: null },
    ),
  ],
}

const SHORT = {
  key: "reminder",
  name: "Reminder",
  steps: [
    step("until", "delay", { until: "{{payload.starts_at}}" }),
    step("evening", "delay", { at: "18:30" }, { position: 1 }),
    step("together", "digest", { window: { amount: 10, unit: "minutes" } }, { position: 2 }),
    step(
      "mail",
      "email",
      { subject: "Soon", text: "Soon.", from: { email: "a@shop.test", name: null } },
      { position: 3 },
    ),
    step("answered", "branch", { step_key: "mail", condition: "replied" }, { position: 4 }),
    step(
      "plain",
      "sms",
      { template_id: "soon" },
      {
        ...inside("answered", "no"),
        conditions: { field: "subscriber.locale", op: "starts_with", value: "de" },
      },
    ),
  ],
}

/** Right workflows that together have everything a workflow can have. */
export const sampleWorkflows = [WELCOME, RULES, SHORT]
