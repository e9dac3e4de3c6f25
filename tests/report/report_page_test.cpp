#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/report.h"
#include "lab/report_for_test.h"
#include "report/browser.h"
#include "support/temp_file.h"

// The report as a reader sees it: in a browser.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReportPage : public testing::Test {
  protected:
    void SetUp() override {
        const std::optional<std::string> program = find_chromium();
        if (!program) {
            GTEST_SKIP() << "no Chromium: none of chromium, chromium-headless-shell, "
                            "chromium-browser, google-chrome is in the PATH, and PLEAT_CHROMIUM "
                            "names none";
        }
        browser_.emplace(*program);
    }

    void open(const ReportData& data) {
        file_.emplace(".html", report_html(data));
        browser_->open(file_->path());
        EXPECT_EQ(evaluate("document.documentElement.dataset.ready"), "yes");
    }

    json evaluate(const std::string& expression) { return browser_->evaluate(expression); }
    void click(const std::string& selector) {
        evaluate("document.querySelector('" + selector + "').click()");
    }

    std::optional<Browser> browser_;
    std::optional<TempFile> file_;
};

TEST_F(ReportPage, LoadsWithoutAComplaintAndAsksForNothing) {
    open(made_up_scan(16));
    evaluate("new Promise((done) => setTimeout(done, 300))");
    EXPECT_THAT(browser_->complaints(), IsEmpty());
    EXPECT_THAT(browser_->requests(), ElementsAre("file://" + file_->path()));
    EXPECT_EQ(evaluate("document.title"), "Scan of repeated blocks");
}

TEST_F(ReportPage, HasEveryCellsExactValueInTheDom) {
    const ReportData data = made_up_scan(16);
    open(data);
    for (const Heatmap& map : heatmaps(data)) {
        SCOPED_TRACE(map.name);
        const json cells =
            evaluate("[...document.querySelectorAll('.cell[data-measure=\"" + map.name +
                     "\"]')].map((cell) => ({...cell.dataset, fill: cell.getAttribute('fill')}))");
        ASSERT_EQ(cells.size(), map.cells.size());
        for (size_t i = 0; i < cells.size(); ++i) {
            const ReportRow& row = data.rows[map.cells[i].row];
            EXPECT_EQ(cells[i]["begin"], std::to_string(*row.begin));
            EXPECT_EQ(cells[i]["end"], std::to_string(*row.end));
            EXPECT_EQ(std::stod(cells[i]["value"].get<std::string>()), map.cells[i].value);
            EXPECT_EQ(cells[i]["plan"], row.flag);
            EXPECT_THAT(cells[i]["fill"].get<std::string>(), testing::StartsWith("rgb("));
        }
    }
}

TEST_F(ReportPage, DrawsMapsAsRysDoes) {
    open(made_up_scan(16));
    const auto box = [&](int begin, int end) {
        return evaluate("(() => { const box = document.querySelector('.cell[data-begin=\"" +
                        std::to_string(begin) + "\"][data-end=\"" + std::to_string(end) +
                        "\"]').getBoundingClientRect(); return {x: box.x, y: box.y}; })()");
    };
    const json at = box(3, 8);
    const json later_end = box(3, 9);
    const json later_begin = box(4, 8);
    EXPECT_GT(later_end["x"], at["x"]);
    EXPECT_EQ(later_end["y"], at["y"]);
    EXPECT_EQ(later_begin["x"], at["x"]);
    EXPECT_GT(later_begin["y"], at["y"]);
    EXPECT_EQ(evaluate("[...document.querySelector('#maps svg').querySelectorAll('.axis-name')]"
                       ".map((it) => it.textContent)"),
              json({"end j", "begin i"}));
}

TEST_F(ReportPage, SaysOfCorrectionAndBalanceOnlyWhatTheDataHas) {
    ReportData data = made_up_scan(8);
    const std::string note = "document.getElementById('table-note').textContent";
    open(data);
    EXPECT_THAT(evaluate(note).get<std::string>(),
                testing::AllOf(HasSubstr("the notes say how"), HasSubstr("of nll, probe:logic"),
                               testing::Not(HasSubstr("Holm"))));
    for (ReportRow& row : data.rows) {
        for (ReportScore& it : row.scores) it.survives.reset();
    }
    data.measures[1].measure.name = "top1";
    open(data);
    EXPECT_THAT(
        evaluate(note).get<std::string>(),
        testing::AllOf(testing::Not(HasSubstr("urvives")), testing::Not(HasSubstr("alanced"))));
    EXPECT_EQ(evaluate("document.getElementById('maps-survive').hidden"), true);
}

TEST_F(ReportPage, NamesNoEndOfColoursThatCannotBe) {
    ReportData data = made_up_scan(8);
    data.measures = {{.measure = {.name = "kl"},
                      .unit = "nats per token",
                      .identity = {.selection = Score{0.0, 0.0}}}};
    for (ReportRow& row : data.rows) row.scores = {{.selection = Score{0.125, 0.1}}};
    data.rows[3].scores[0].selection->value = 0.0;
    open(data);
    const std::string texts =
        "[...document.querySelectorAll('#maps svg text')].map((it) => it.textContent)";
    EXPECT_THAT(
        evaluate(texts).get<std::vector<std::string>>(),
        testing::AllOf(testing::Contains("worse"), testing::Not(testing::Contains("better"))));
    EXPECT_THAT(evaluate("[...document.querySelectorAll('.cell')].map((it) => "
                         "it.getAttribute('fill'))")
                    .get<std::vector<std::string>>(),
                testing::Each(testing::Not(HasSubstr("NaN"))));
    EXPECT_THAT(browser_->complaints(), IsEmpty());
}

TEST_F(ReportPage, TellsAPlanUnderThePointer) {
    open(made_up_scan(16));
    evaluate(
        "document.querySelector('.cell[data-begin=\"7\"][data-end=\"9\"]')"
        ".dispatchEvent(new PointerEvent('pointerenter'))");
    EXPECT_THAT(evaluate("document.getElementById('tip').textContent").get<std::string>(),
                testing::AllOf(HasSubstr("--repeat-layers \"7,9\""), HasSubstr("nll 2.")));
}

TEST_F(ReportPage, SortsAndFiltersItsTable) {
    const ReportData data = made_up_scan(16);
    open(data);
    const std::string values =
        "[...document.querySelectorAll('#table tbody tr[data-plan]')].map((row) => "
        "row.dataset.plan)";
    // As the data has them, until a reader wants another order.
    json order = json::array();
    for (const ReportRow& row : data.rows) order.push_back(row.flag);
    EXPECT_EQ(evaluate(values), order);
    EXPECT_EQ(evaluate("document.querySelector('#table th[aria-sort]')"), nullptr);
    click("#table th:nth-child(5) button");  // nll, selection
    EXPECT_EQ(evaluate("document.querySelector('#table th[aria-sort]').ariaSort"), "ascending");
    const auto best = std::ranges::min_element(
        data.rows, {}, [](const ReportRow& row) { return row.scores[0].selection->value; });
    EXPECT_EQ(evaluate(values)[0], best->flag);
    click("#table th:nth-child(5) button");
    EXPECT_EQ(evaluate("document.querySelector('#table th[aria-sort]').ariaSort"), "descending");
    const auto worst = std::ranges::max_element(
        data.rows, {}, [](const ReportRow& row) { return row.scores[0].selection->value; });
    EXPECT_EQ(evaluate(values)[0], worst->flag);
    evaluate("document.querySelector('#table thead tr:last-child th:last-child button').click()");
    const std::vector<std::optional<double>> balanced = balanced_scores(data).rows;
    EXPECT_EQ(
        evaluate(values)[0],
        data.rows[static_cast<size_t>(std::ranges::max_element(balanced) - balanced.begin())].flag);
    evaluate(
        "document.getElementById('filter').value = '\"7,9';"
        "document.getElementById('filter').dispatchEvent(new Event('input'))");
    EXPECT_EQ(evaluate(values), json({"--repeat-layers \"7,9\""}));
    EXPECT_THAT(browser_->complaints(), IsEmpty());
}

TEST_F(ReportPage, ShowsTheFrontOfWhatWasChosen) {
    const ReportData data = made_up_scan(16);
    open(data);
    evaluate(
        "document.getElementById('front-measure').value = '1';"
        "document.getElementById('front-cost').value = 'kv_ratio';"
        "document.getElementById('front-cost').dispatchEvent(new Event('change'))");
    json expected = json::array();
    for (const size_t i : pareto_front(data, 1, &ReportRow::kv_ratio)) {
        expected.push_back(data.rows[i].flag);
    }
    EXPECT_EQ(evaluate("[...document.querySelectorAll('#front-list code')]"
                       ".map((code) => code.textContent)"),
              expected);
}

TEST_F(ReportPage, RingsTheBestOfWhatCompares) {
    ReportData data = made_up_scan(16);
    const auto cell_in_ring = [&] {
        open(data);
        return evaluate(
            "(() => { const map = document.querySelector('#maps svg');"
            " const ring = map.querySelector('.mark').getBoundingClientRect();"
            " const x = ring.x + ring.width / 2, y = ring.y + ring.height / 2;"
            " return [...map.querySelectorAll('.cell')].find((cell) => {"
            "   const box = cell.getBoundingClientRect();"
            "   return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;"
            " }).dataset.plan; })()");
    };
    const auto best = [&] {
        const ReportRow* found = nullptr;
        for (const ReportRow& it : data.rows) {
            if (!it.set_aside.empty()) continue;
            if (found == nullptr ||
                it.scores[0].selection->value < found->scores[0].selection->value) {
                found = &it;
            }
        }
        return found->flag;
    };
    const std::string first = best();
    EXPECT_EQ(cell_in_ring(), first);
    EXPECT_EQ(evaluate("document.getElementById('maps-aside').hidden"), true);
    for (ReportRow& it : data.rows) {
        if (it.flag == first) it.set_aside = "stopped early: 8 of 64 items";
    }
    EXPECT_EQ(cell_in_ring(), best());
    EXPECT_NE(best(), first);
    EXPECT_EQ(evaluate("document.getElementById('maps-aside').hidden"), false);
    EXPECT_EQ(evaluate("document.querySelector('#maps .cell.aside').dataset.plan"), first);
    EXPECT_EQ(evaluate("document.querySelector('#table tbody tr:last-child').dataset.plan"), first);
}

TEST_F(ReportPage, TakesTextsOfTheDataAsTexts) {
    ReportData data = made_up_scan(4);
    data.title = "<i>a</i> & </title><script>throw 1</script>";
    data.notes = {"<img src=\"http://example.invalid/x.png\">", "<!-- <script>"};
    data.rows[0].flag = "\"><svg onload=alert(1)>";
    open(data);
    EXPECT_EQ(evaluate("document.title"), data.title);
    EXPECT_EQ(evaluate("document.querySelector('h1').textContent"), data.title);
    EXPECT_EQ(evaluate("document.querySelectorAll('img, h1 i, b').length"), 0);
    EXPECT_EQ(evaluate("document.querySelector('#notes li').textContent"), data.notes[0]);
    EXPECT_THAT(browser_->complaints(), IsEmpty());
    EXPECT_EQ(browser_->requests().size(), 1U);
}

TEST_F(ReportPage, StandsWithoutRowsOrMeasures) {
    open({.title = "Nothing", .model = "none"});
    EXPECT_EQ(evaluate("document.querySelectorAll('.cell').length"), 0);
    ReportData data = made_up_scan(4);
    data.rows.clear();
    open(data);
    data = made_up_scan(4);
    for (ReportRow& row : data.rows) row.scores[0] = {};
    data.measures[0].identity = {};
    open(data);
    EXPECT_THAT(browser_->complaints(), IsEmpty());
}

TEST_F(ReportPage, FollowsTheReadersColours) {
    open(made_up_scan(64));
    const std::string fill = "document.querySelector('.cell').getAttribute('fill')";
    const json light = evaluate(fill);
    // For a person to look at.
    const char* const folder = std::getenv("PLEAT_SCREENSHOTS");
    if (folder != nullptr) browser_->screenshot(std::string(folder) + "/light.png", 1320, 1900);
    browser_->set_dark(true);
    evaluate("new Promise((done) => setTimeout(done, 300))");
    EXPECT_NE(evaluate(fill), light);
    if (folder != nullptr) browser_->screenshot(std::string(folder) + "/dark.png", 1320, 1900);
    if (folder != nullptr) browser_->screenshot(std::string(folder) + "/narrow.png", 420, 1900);
}

}  // namespace
}  // namespace pleat::test
