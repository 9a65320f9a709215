DROP INDEX `request_log_by_request`;--> statement-breakpoint
CREATE INDEX `request_log_by_request` ON `request_log` (`request_id`,`id`);