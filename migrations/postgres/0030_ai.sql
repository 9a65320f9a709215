CREATE TABLE "ai_calls" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"action" text NOT NULL,
	"period" text NOT NULL,
	"held_micro" bigint NOT NULL,
	"lease_until" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "ai_instance_spending" (
	"period" text COLLATE "C" PRIMARY KEY NOT NULL,
	"spent_micro" bigint NOT NULL,
	"held_micro" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "ai_quotas" (
	"account_id" uuid NOT NULL,
	"period" text NOT NULL,
	"action" text NOT NULL,
	"used" bigint NOT NULL,
	CONSTRAINT "ai_quotas_account_id_period_action_pk" PRIMARY KEY("account_id","period","action")
);
--> statement-breakpoint
CREATE TABLE "ai_spending" (
	"project_id" uuid NOT NULL,
	"period" text NOT NULL,
	"action" text NOT NULL,
	"count" bigint NOT NULL,
	"spent_micro" bigint NOT NULL,
	"held_micro" bigint NOT NULL,
	CONSTRAINT "ai_spending_project_id_period_action_pk" PRIMARY KEY("project_id","period","action")
);
--> statement-breakpoint
CREATE INDEX "ai_calls_by_lease" ON "ai_calls" USING btree ("lease_until");--> statement-breakpoint
CREATE INDEX "ai_quotas_by_period" ON "ai_quotas" USING btree ("period");--> statement-breakpoint
CREATE INDEX "ai_spending_by_period" ON "ai_spending" USING btree ("period");