DROP INDEX `webhook_deliveries_held`;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_held_by_endpoint` ON `webhook_deliveries` (`webhook_id`,`run_at`) WHERE state = 3 AND owner IS NULL;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_held_by_name` ON `webhook_deliveries` (`owner`,`id`) WHERE state = 3 AND owner IS NOT NULL;