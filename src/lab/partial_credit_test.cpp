#include "lab/partial_credit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "lab/random.h"

namespace pleat {
namespace {

struct Worked {
    const char* answer;
    const char* estimate;
    double credit;
};

class WorkedValues : public testing::TestWithParam<Worked> {};

TEST_P(WorkedValues, AreThoseOfRys) {
    const Worked& worked = GetParam();
    EXPECT_NEAR(partial_credit(worked.answer, worked.estimate), worked.credit, 5e-7);
    EXPECT_EQ(partial_credit(worked.answer, worked.estimate),
              partial_credit(worked.estimate, worked.answer));
}

INSTANTIATE_TEST_SUITE_P(
    Published, WorkedValues,
    testing::Values(Worked{"4302459", "430245", 0.857141},
                    Worked{"123456789", "123356789", 0.999190},
                    Worked{"4302459", "9999999", 0.430246}, Worked{"4302459", "0", 0},
                    Worked{"0", "0", 0}, Worked{"9", "10", 0.055556},
                    Worked{"25774", "25773", 0.999961}, Worked{"951548", "95154", 0.833326},
                    Worked{"951548", "9515480", 0.857143}, Worked{"100", "1", 0.333333}));

// Computed with Python's integers: (1 - abs(a - e) / max(a, e)) * (1 - p / L).
TEST(PartialCredit, IsPythonsInEveryBit) {
    EXPECT_EQ(partial_credit("1234567890123456789012345678", "1234567890123456789012345679"),
              0x1.0000000000000p+0);
    EXPECT_EQ(partial_credit("9999999999999999999999999999", "1"), 0x1.d41d41d41d418p-9);
    EXPECT_EQ(partial_credit("1234567890123456789012345678", "1234567000000000000000000000"),
              0x1.ffffe7cea837fp-1);
    EXPECT_EQ(partial_credit("46813507399154757", "51770413966950553"), 0x1.cefa22ccea1ccp-1);
    EXPECT_EQ(partial_credit("7368248133177167415", "9877509567454608800"), 0x1.7deebfc280e3ap-1);
    EXPECT_EQ(partial_credit("80841919002507010799", "35948604057394821239"), 0x1.c7599bd19bd6ap-2);
    EXPECT_EQ(partial_credit("66172423985947222698125", "37359996275890923563170"),
              0x1.21115c66c6cc6p-1);
    EXPECT_EQ(partial_credit("2009905531147472738367134158", "229876648986789446341742405"),
              0x1.afacb1b1286a0p-1);
    EXPECT_EQ(partial_credit("5042132266058698527639264032", "9175044943956761101531359261"),
              0x1.195e6c10b9b28p-1);
    EXPECT_EQ(partial_credit("9221087305730257331324448628810563308701",
                             "6775634356963448406671512814329930044247"),
              0x1.783769b097e03p-1);
    EXPECT_EQ(partial_credit("770677232639583534548197112068287773885545571786689042384191152776020"
                             "0997406330304280135294826568353",
                             "537232484153503392033625385686566172152971775582322156230820434142387"
                             "4068567765683926587520178810352"),
              0x1.64e92a8cb5a62p-1);
}

TEST(PartialCredit, IsOneForTheNumberItselfOfAnyLength) {
    EXPECT_EQ(partial_credit("7", "7"), 1.0);
    EXPECT_EQ(partial_credit("1234567890123456789012345678", "1234567890123456789012345678"), 1.0);
    const std::string nines(max_digits, '9');
    EXPECT_EQ(partial_credit(nines, nines), 1.0);
}

TEST(PartialCredit, DoesNotSeeLeadingZeros) {
    EXPECT_EQ(partial_credit("42", "0042"), 1.0);
    EXPECT_EQ(partial_credit("000", "0"), 0.0);
}

TEST(PartialCredit, SurvivesNumbersThatAreFarApart) {
    const std::string huge = "1" + std::string(max_digits - 1, '0');
    EXPECT_NEAR(partial_credit(huge, "1"), 1.0 / max_digits, 1e-12);
    EXPECT_EQ(partial_credit(huge, "0"), 0.0);
    const std::string nines(400, '9');
    EXPECT_EQ(partial_credit(nines, std::string(399, '9') + "8"), 1.0);  // rounds to it
}

TEST(PartialCreditProperty, IsTheFormulaWhereDoublesAreExact) {
    for (uint64_t seed = 0; seed < 2000; ++seed) {
        SCOPED_TRACE(seed);
        SplitMix64 random(seed);
        const uint64_t limit = uint64_t{1} << (4 + random.below(46));
        uint64_t a = 1 + random.next() % limit;
        uint64_t e = 1 + random.next() % limit;
        const std::string answer = std::to_string(a);
        const std::string estimate = std::to_string(e);
        const size_t length = std::max(answer.size(), estimate.size());
        for (size_t i = answer.size(); i < length; ++i) a *= 10;
        for (size_t i = estimate.size(); i < length; ++i) e *= 10;
        const double l = static_cast<double>(length);
        const double p = l - static_cast<double>(std::min(answer.size(), estimate.size()));
        const double quotient = static_cast<double>(std::max(a, e) - std::min(a, e)) /
                                static_cast<double>(std::max(a, e));
        if (std::max(a, e) >= uint64_t{1} << 53) continue;
        EXPECT_EQ(partial_credit(answer, estimate), (1 - quotient) * (1 - p / l));
    }
}

TEST(PartialCredit, RefusesWhatIsNoNumber) {
    EXPECT_THROW(partial_credit("", "1"), Error);
    EXPECT_THROW(partial_credit("1", "-1"), Error);
    EXPECT_THROW(partial_credit("1", "1.5"), Error);
    EXPECT_THROW(partial_credit("1", std::string(max_digits + 1, '1')), Error);
}

}  // namespace
}  // namespace pleat
