from pytest_sandboxbench.compliance.suite import ComplianceSuite


class TestMini(ComplianceSuite):
    provider = "mini"
